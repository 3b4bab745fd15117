"""What the suites that drive a real broker share: a wire client, a broker process, a report. Standard library only."""
