//! Which names a topic may have. The same rule protects the data directory: a name is a part of
//! directory names, so what could lead out of it is no name.

/// Leaves room for "-<partition>" and a deletion's suffix within the limit of file systems.
pub const TOPIC_NAME_BYTES_MAX: usize = 249;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TopicNameError {
    #[error("a topic's name cannot be empty")]
    Empty,
    #[error("'.' and '..' are no names of topics")]
    Dots,
    #[error("a topic's name of {0} bytes is longer than {TOPIC_NAME_BYTES_MAX}")]
    TooLong(usize),
    #[error("'{0}' is no name of a topic: only A-Z, a-z, 0-9, '.', '_' and '-' can be in one")]
    Characters(String),
}

pub fn check_topic_name(name: &str) -> Result<(), TopicNameError> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if name.is_empty() {
        Err(TopicNameError::Empty)
    } else if name == "." || name == ".." {
        Err(TopicNameError::Dots)
    } else if name.len() > TOPIC_NAME_BYTES_MAX {
        Err(TopicNameError::TooLong(name.len()))
    } else if !name.bytes().all(allowed) {
        Err(TopicNameError::Characters(name.escape_default().to_string()))
    } else {
        Ok(())
    }
}

/// Where the metadata log would be if it were a topic; its name is taken.
pub const METADATA_TOPIC: &str = "__cluster_metadata";
pub const OFFSETS_TOPIC: &str = "__consumer_offsets";
pub const TRANSACTION_STATE_TOPIC: &str = "__transaction_state";
pub const SHARE_STATE_TOPIC: &str = "__share_group_state";

/// Topics that belong to the broker: clients read them at most.
pub fn is_internal(name: &str) -> bool {
    matches!(name, OFFSETS_TOPIC | TRANSACTION_STATE_TOPIC | SHARE_STATE_TOPIC)
}
