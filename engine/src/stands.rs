//! What stands of a person's answers: every *from now on*, every no, and every
//! *once* that nothing was sent with yet; and how they are taken back. A row that
//! withdraws is appended, none is changed; what it takes back the proxy reads
//! with the decisions.

use crate::approvals::{argument, excerpt};
use crate::changes::Topic;
use crate::port::{AskRow, AskState};
use crate::{Engine, EngineError, PersonProof, StandingAnswer, ToolName};
use cambium_proxy::{AgentId, Answer, ContentHash, DecisionRow};

impl Engine {
    /// Withdraws what stands of an agent for a tool, a *once* that nothing was
    /// sent with too: the next write asks again. It is taken back by a new row.
    pub async fn withdraw(
        &self,
        _proof: &PersonProof,
        agent: &AgentId,
        tool: &ToolName,
    ) -> Result<(), EngineError> {
        self.agent_by_id(agent).await?;
        let _deciding = self.approvals.deciding().await;
        let standing = self.parts.store.standing_decision(agent, tool).await?;
        let row = match standing.filter(|row| row.answer != Answer::Withdrawn) {
            Some(row) => row,
            None => self.unused(agent, tool).await?.ok_or_else(|| {
                argument("tool", "no answer of a person stands for this agent and tool")
            })?,
        };
        let row = self.approvals.withdrawal(row, tool, "person").await?;
        self.parts.store.append_decision(&row).await?;
        self.changed(Topic::Lists);
        Ok(())
    }

    /// Every yes and no of the person that stands, by agent and tool, and every
    /// *once* that nothing was sent with.
    pub async fn standing_answers(&self) -> Result<Vec<StandingAnswer>, EngineError> {
        let agents = self.agents().await?;
        let mut stand = Vec::new();
        for connection in self.connections().await? {
            let mut rows = self.parts.store.decisions_on(&connection.id).await?;
            rows.retain(|row| matches!(row.answer, Answer::Standing | Answer::Deny));
            let unused = self.parts.store.unused_on(&connection.id).await?;
            // One for another state of the connection lets nothing go.
            rows.extend(unused.into_iter().filter(|row| row.generation == connection.generation));
            for row in rows {
                let about = match row.answer {
                    Answer::Once => self.parts.store.ask(&row.ask).await?,
                    Answer::Standing | Answer::Deny | Answer::Withdrawn => None,
                };
                let name = agents.iter().find(|agent| agent.id == row.agent);
                stand.push(StandingAnswer {
                    agent_name: name.map(|agent| agent.name.clone()).unwrap_or_default(),
                    agent: row.agent,
                    tool: row.tool,
                    answer: row.answer,
                    ask: row.ask,
                    request: about
                        .as_ref()
                        .map(|ask| format!("{} {}{}", ask.method, ask.authority, ask.target)),
                    excerpt: about.map(|ask| excerpt(&ask.body, &ask.digest)),
                    connection_slug: connection.slug.clone(),
                    channel: row.channel,
                    at_ms: row.at_ms,
                });
            }
        }
        stand.sort_by(|a, b| (&a.agent_name, &a.tool).cmp(&(&b.agent_name, &b.tool)));
        Ok(stand)
    }

    /// A content that was approved before and comes back asks again, and a *once*
    /// ends with the version it was given for: both are withdrawn by new rows.
    /// The caller holds `deciding`.
    pub(crate) async fn ask_again(
        &self,
        tool: &ToolName,
        hash: ContentHash,
    ) -> Result<(), EngineError> {
        for agent in self.agents().await? {
            let standing = self.parts.store.standing_decision(&agent.id, tool).await?;
            let unused = self.unused(&agent.id, tool).await?;
            let comes_back =
                |row: &DecisionRow| row.answer == Answer::Standing && row.version == hash;
            let of = match standing {
                // A no outlives every version, and leaves no *once* to be used.
                Some(row) if row.answer == Answer::Deny => None,
                Some(row) if comes_back(&row) => Some(row),
                Some(_) | None => unused,
            };
            if let Some(row) = of {
                let row = self.approvals.withdrawal(row, tool, "publish").await?;
                self.parts.store.append_decision(&row).await?;
            }
        }
        Ok(())
    }

    /// The newest *once* that nothing was sent with.
    pub(crate) async fn unused(
        &self,
        agent: &AgentId,
        tool: &ToolName,
    ) -> Result<Option<DecisionRow>, EngineError> {
        Ok(self.parts.store.unused_of(agent, tool).await?.pop())
    }

    /// What became of the *once* an ask was answered with.
    pub(crate) async fn became_of_once(
        &self,
        row: &AskRow,
    ) -> Result<Option<&'static str>, EngineError> {
        if row.state != AskState::AllowedOnce {
            return Ok(None);
        }
        let store = &self.parts.store;
        Ok(Some(if store.is_used(&row.id).await? {
            "used"
        } else if store.unused_of(&row.agent, &row.tool).await?.iter().any(|one| one.ask == row.id)
        {
            "unused"
        } else {
            "ended"
        }))
    }
}
