"""Rules about the data of users as a whole: what is hidden, cleared, cleaned and moved in."""
