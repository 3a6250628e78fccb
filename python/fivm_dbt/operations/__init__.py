"""What is done beside a refresh: checks, cleaning up, dropping old parts."""
