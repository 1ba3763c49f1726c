"""What dovetail did and would do: `explain` and `profile`. They look and change nothing."""
