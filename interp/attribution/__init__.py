"""Attribution: how much of an answer comes from each token and segment of its prompt."""
