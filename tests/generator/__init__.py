"""Random queries over random changes, and every kind of query in every position: what the product is held against."""
