"""Draw: colours, fonts, lines, panels and files of all pictures. It knows tables, and nothing of what is in them."""
