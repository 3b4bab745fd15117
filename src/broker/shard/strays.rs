//! What a crash in the middle of a deletion leaves behind, finished at the next start.

use metadata::Image;
use protocol::HostId;
use runtime::fs::FsError;
use storage::Storage;

/// Begins to remove what earlier deletions had moved away, and moves away the directories that no
/// partition of this host claims any more. Runs before any slot opens a log.
pub async fn clear_strays(storage: &Storage, image: &Image, host: HostId) -> Result<(), FsError> {
    let unfinished = storage.finish_deletions().await?;
    if unfinished > 0 {
        tracing::info!(unfinished, "finishing the deletion of partitions");
    }
    for (topic, index) in storage.list_logs().await? {
        let Some(id) = storage.topic_id_of(&topic, index).await else { continue };
        let partition = image.partition(id, index);
        let ours = partition.is_some_and(|partition| partition.replica_on(host).is_some());
        if !ours && storage.delete_stray(&topic, index, id).await? {
            tracing::info!(topic, index, %id, "deleted a partition that was on its way out");
        }
    }
    Ok(())
}
