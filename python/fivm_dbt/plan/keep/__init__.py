"""This package decides which inner views of a query are kept, so that a refresh need not read its inputs."""
