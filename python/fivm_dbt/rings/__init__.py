"""A state keeps payloads of rings per key: one ring per file, and the registry SQL aggregate → ring."""
