"""What `binloom doctor` checks: this machine, the home, a cluster and a server, without changing any of them."""
