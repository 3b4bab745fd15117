//! Behaviour: the groups that this node coordinates, by state and type if asked. Clients ask
//! every node and put the answers together.
//!
//! Versions: 0–5. 4 filters by state (KIP-518), 5 by type (KIP-848).

use protocol::messages::list_groups::{ListGroupsRequest, ListGroupsResponse};

use crate::connection::Outcome;
use crate::dispatch::{Context, pause_if_long};

pub async fn handle(cx: Context, request: ListGroupsRequest) -> Outcome {
    let pumps = match cx.slot.groups.all() {
        Ok(pumps) => pumps,
        Err(error_code) => {
            return cx.reply(&ListGroupsResponse { error_code, ..Default::default() });
        }
    };
    let mut groups = Vec::new();
    for pump in pumps {
        let (some, _) = pump.look(|it| it.list(&request.states_filter, &request.types_filter));
        groups.extend(some);
        pause_if_long().await;
    }
    cx.reply_long(ListGroupsResponse { groups, ..ListGroupsResponse::default() }).await
}
