"""From selected changes to proved statements in an order in which a server accepts them."""
