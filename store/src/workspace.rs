//! Files of agents' workspaces.

use crate::Store;
use crate::database::Commit;
use crate::error::fault;
use crate::row::{Read, belongs, whole};
use cambium_engine::port::{Answering, WorkspaceFile, WorkspacePut, WorkspaceRoom, WorkspaceStore};
use cambium_proxy::AgentId;

pub(crate) const CONTENT: &str =
    "SELECT content FROM workspace_files WHERE agent_id = $1 AND path = $2";
pub(crate) const PATHS: &str = "SELECT path FROM workspace_files WHERE agent_id = $1 ORDER BY path";
const OTHERS: &str =
    "SELECT COUNT(*) AS files, COALESCE(SUM(LENGTH(CAST(content AS BLOB))), 0) AS bytes
    FROM workspace_files WHERE agent_id = $1 AND path <> $2";
/// What a new path cannot be beside. One that is kept already makes nothing worse.
const CLASH: &str = "SELECT path FROM workspace_files WHERE agent_id = $1
    AND (SUBSTR(path, 1, LENGTH($2) + 1) = $2 || '/'
        OR SUBSTR($2, 1, LENGTH(path) + 1) = path || '/')
    AND NOT EXISTS (SELECT 1 FROM workspace_files WHERE agent_id = $1 AND path = $2)
    ORDER BY path LIMIT 1";
const REMOVE: &str = "DELETE FROM workspace_files WHERE agent_id = $1 AND path = $2";

impl WorkspaceStore for Store {
    fn put_workspace_file<'a>(
        &'a self,
        file: &'a WorkspaceFile,
        instead_of: &'a [&'a str],
        room: WorkspaceRoom,
    ) -> Answering<'a, WorkspacePut> {
        Box::pin(async move {
            let mut writing = self.write(Commit::Durable).await?;
            for &path in instead_of {
                let removed = sqlx::query(REMOVE).bind(file.agent.as_str()).bind(path);
                removed.execute(writing.on()).await.map_err(fault)?;
            }
            let clash = sqlx::query(CLASH).bind(file.agent.as_str()).bind(&file.path);
            let clash = clash.fetch_optional(writing.on()).await.map_err(fault)?;
            if let Some(clash) = clash {
                return Ok(WorkspacePut::Clash(clash.get_as("path")?));
            }
            let others = sqlx::query(OTHERS).bind(file.agent.as_str()).bind(&file.path);
            let others = others.fetch_one(writing.on()).await.map_err(fault)?;
            let (files, bytes): (i64, i64) = (others.get_as("files")?, others.get_as("bytes")?);
            let bytes = bytes.saturating_add(whole(file.content.len() as u64)?);
            if files >= whole(room.files)? || bytes > whole(room.bytes)? {
                return Ok(WorkspacePut::Full);
            }
            let done = sqlx::query(
                "INSERT INTO workspace_files (agent_id, path, person_id, content, written_ms)
                SELECT agent_id, $2, person_id, $3, $4 FROM agents WHERE agent_id = $1
                ON CONFLICT (agent_id, path) DO UPDATE
                SET content = excluded.content, written_ms = excluded.written_ms",
            )
            .bind(file.agent.as_str())
            .bind(&file.path)
            .bind(&file.content)
            .bind(file.written_ms)
            .execute(writing.on())
            .await
            .map_err(fault)?;
            belongs(done.rows_affected(), "agent")?;
            writing.commit().await?;
            Ok(WorkspacePut::Written)
        })
    }

    fn remove_workspace_files<'a>(
        &'a self,
        agent: &'a AgentId,
        paths: &'a [&'a str],
    ) -> Answering<'a, ()> {
        Box::pin(async move {
            let mut writing = self.write(Commit::Durable).await?;
            for &path in paths {
                let removed = sqlx::query(REMOVE).bind(agent.as_str()).bind(path);
                removed.execute(writing.on()).await.map_err(fault)?;
            }
            writing.commit().await
        })
    }

    fn workspace_file<'a>(
        &'a self,
        agent: &'a AgentId,
        path: &'a str,
    ) -> Answering<'a, Option<String>> {
        Box::pin(async move {
            let mut on = self.read().await?;
            let row = sqlx::query(CONTENT).bind(agent.as_str()).bind(path);
            let row = row.fetch_optional(&mut *on).await.map_err(fault)?;
            row.map(|row| row.get_as("content")).transpose()
        })
    }

    fn workspace_paths<'a>(&'a self, agent: &'a AgentId) -> Answering<'a, Vec<String>> {
        Box::pin(async move {
            let mut on = self.read().await?;
            let rows = sqlx::query(PATHS).bind(agent.as_str()).fetch_all(&mut *on).await;
            rows.map_err(fault)?.iter().map(|row| row.get_as("path")).collect()
        })
    }
}
