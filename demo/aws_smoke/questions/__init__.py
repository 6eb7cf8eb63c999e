"""Questions that only AWS can answer: each with the project's assumption, and a function that finds the answer."""
