"""The page that people look at: built files, and the way in from this machine."""
