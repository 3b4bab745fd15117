//! Behaviour: reassignments under way (KIP-455). A move between slots is over when it is answered,
//! so there is never one under way on a host alone.
//!
//! Versions: 0.

use metadata::controller as decisions;
use protocol::messages::list_partition_reassignments::ListPartitionReassignmentsRequest;

use crate::connection::Outcome;
use crate::dispatch::Context;

pub async fn handle(cx: Context, request: ListPartitionReassignmentsRequest) -> Outcome {
    cx.reply_long(decisions::list_partition_reassignments(&request)).await
}
