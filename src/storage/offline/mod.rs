//! `log dump`, `log verify` and `log repair` on a directory that no broker has open.
