"""Draw: colours, fonts, lines, panels and files of all pictures. It works on tables and does not depend on what they
contain."""
