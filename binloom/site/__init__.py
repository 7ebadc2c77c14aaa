"""The site of `binloom docs`: the tables of the project and where each column comes from."""
