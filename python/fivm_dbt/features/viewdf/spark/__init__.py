"""Statements read parts, compute them and write them."""
