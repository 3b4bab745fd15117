//! What this crate promises, area by area; `world` has the clusters that are asked about.

mod config_layers;
mod config_tables;
mod config_values;
mod image;
mod records;
#[cfg(test)]
mod world;
