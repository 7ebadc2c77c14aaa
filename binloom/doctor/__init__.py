"""The checks of `binloom doctor`: of this machine, the home, a cluster and a server. They change nothing."""
