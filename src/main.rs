//! The program: hands its arguments to the broker or to the load generator.
fn main() {}
