"""The servers of one data directory: started, watched, stopped."""
