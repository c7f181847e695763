"""What measures and shows the service from outside: evaluation, calibration and the demo."""
