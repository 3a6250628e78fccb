"""Operations run beside refreshes: checks, cleaning up, dropping old parts."""
