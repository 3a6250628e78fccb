"""The steps of a build and of a refresh, in their order: data that runner, explain and checker all read."""
