"""Models are trained from moments of a join, which fivm maintains: no row of the join is read (F-IVM article, 8, 9)."""
