//! What this crate promises, area by area; `world` has the clusters that are asked about.

#[cfg(test)]
mod config_docs;
#[cfg(test)]
mod config_layers;
#[cfg(test)]
mod config_requests;
#[cfg(test)]
mod config_tables;
#[cfg(test)]
mod config_values;
#[cfg(test)]
mod create_topics;
#[cfg(test)]
mod host_life;
#[cfg(test)]
mod image;
#[cfg(test)]
mod records;
#[cfg(test)]
mod topic_life;
#[cfg(test)]
mod world;
