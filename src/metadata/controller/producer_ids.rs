//! Producer ids, in blocks: a slot takes a block and numbers producers from it by itself, so that
//! starting a producer is no matter of the whole cluster.

use protocol::{ErrorCode, HostId, SlotIndex};

use super::{Context, Decision, Refusal};
use crate::record::{MetadataRecord, ProducerIdsAllocated};

/// As many as Kafka hands out at once.
pub const PRODUCER_ID_BLOCK: i64 = 1000;

/// Ids from `first` on, `count` of them, that nobody else will ever get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerIdBlock {
    pub first: i64,
    pub count: i64,
}

pub fn allocate_producer_ids(
    context: &Context<'_>,
    host: HostId,
    slot: SlotIndex,
) -> Result<Decision<ProducerIdBlock>, Refusal> {
    let first = context.image.next_producer_id();
    let Some(next) = first.checked_add(PRODUCER_ID_BLOCK) else {
        let message = "every producer id is taken";
        return Err(Refusal::new(ErrorCode::UNKNOWN_SERVER_ERROR, message));
    };
    let allocated = ProducerIdsAllocated { host, slot, next };
    let records = vec![MetadataRecord::ProducerIdsAllocated(allocated)];
    let response = ProducerIdBlock { first, count: PRODUCER_ID_BLOCK };
    Ok(Decision { records, response, warnings: Vec::new() })
}
