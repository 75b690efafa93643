"""Attribution: the contribution of each token and segment of a prompt to the answer."""
