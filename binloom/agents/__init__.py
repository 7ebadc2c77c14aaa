"""The server for agents: the tools of the Model Context Protocol, over the functions of `binloom.api`."""
