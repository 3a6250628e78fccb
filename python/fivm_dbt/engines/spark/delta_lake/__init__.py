"""What Delta needs in a session, and shorter ways to answers where the session is in this process."""
