"""The demo: ten years of New York flights, kept exact by fivm models while the raw data change."""
