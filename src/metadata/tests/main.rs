//! What this crate promises, area by area; `world` has the clusters that are asked about.

mod image;
mod records;
#[cfg(test)]
mod world;
