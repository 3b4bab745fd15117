//! Offset and time index: Kafka's formats and the lookups in them.
