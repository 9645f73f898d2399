//! Working sets: what an agent's list holds, how tools get in and out, and the
//! sweep that carries out the rule. Each move and its history row are one
//! transaction of the store; a notice follows only what changed something.

use crate::command::Caller;
use crate::port::{SetRow, ToolRuns};
use crate::rule::{self, Member, SetLimits};
use crate::{
    Agent, Engine, EngineError, Event, HistoryEntry, Leaving, ListedTool, MoveCause, SweepPlan,
    ToolName, WorkingSetEntry,
};
use cambium_proxy::{AgentId, StoreFault};

/// History rows answered at once.
const HISTORY_SHOWN: u32 = 500;

impl Engine {
    /// Exactly the promoted tools, by wire name.
    pub async fn tool_list(&self, caller: &Caller) -> Result<Vec<ListedTool>, EngineError> {
        self.listed(&caller.agent.id).await
    }

    /// The same for a person who looks at an agent's list.
    pub async fn listed(&self, agent: &AgentId) -> Result<Vec<ListedTool>, EngineError> {
        // One tool at a time: a list costs what is on it, not what the toolbox holds.
        let mut listed = Vec::new();
        for row in self.parts.store.set(agent).await? {
            match self.toolbox.current(&row.tool).await {
                Ok(Some((_, loaded))) => listed.push(loaded.listed.clone()),
                Ok(None) => {}
                // It was logged where it was read, and takes no other down.
                Err(StoreFault::Corrupt(_)) => {}
                Err(fault) => return Err(fault.into()),
            }
        }
        listed.sort_by_cached_key(|tool| tool.tool.to_string());
        Ok(listed)
    }

    /// Answers the set's new size and the tool's schema.
    pub async fn promote(
        &self,
        caller: &Caller,
        tool: &ToolName,
    ) -> Result<(usize, ListedTool), EngineError> {
        caller.active()?;
        let (_, loaded) = self.known(tool).await?;
        let agent = &caller.agent.id;
        let moved = self.parts.store.promote(agent, tool, caller.cause, self.now()).await?;
        if moved.changed > 0 {
            self.send(Event::list_changed([agent.clone()]));
        }
        Ok((moved.size, loaded.listed.clone()))
    }

    /// Answers the set's new size.
    pub async fn demote(&self, caller: &Caller, tool: &ToolName) -> Result<usize, EngineError> {
        caller.active()?;
        self.known(tool).await?;
        let agent = &caller.agent.id;
        let out = [(tool.clone(), caller.cause)];
        let moved = self.parts.store.demote(agent, &out, self.now()).await?;
        if moved.changed > 0 {
            self.send(Event::list_changed([agent.clone()]));
        }
        Ok(moved.size)
    }

    /// The set as a person sees it, by wire name.
    pub async fn working_set(&self, agent: &AgentId) -> Result<Vec<WorkingSetEntry>, EngineError> {
        self.agent_by_id(agent).await?;
        let rows = self.parts.store.set(agent).await?;
        let entry = |row: SetRow| WorkingSetEntry {
            tool: row.tool,
            promoted_by: row.cause,
            promoted_ms: row.promoted_ms,
            last_used_ms: row.last_used_ms,
        };
        Ok(rows.into_iter().map(entry).collect())
    }

    /// Newest first, at most 500.
    pub async fn history(&self, agent: &AgentId) -> Result<Vec<HistoryEntry>, EngineError> {
        self.agent_by_id(agent).await?;
        Ok(self.parts.store.history(agent, HISTORY_SHOWN).await?)
    }

    /// One sweep over all agents; answers how many tools were demoted. Two
    /// never overlap: the second has nothing to do. Also settles what time has
    /// settled: asks past their expiry, ends of runs the store could not take.
    pub async fn sweep(&self) -> Result<usize, EngineError> {
        let Ok(_alone) = self.sweeping.try_lock() else { return Ok(0) };
        self.approvals.expire().await;
        self.owed.pay(self.parts.store.as_ref()).await;
        let mut demoted = 0;
        for agent in self.agents().await? {
            match self.sweep_agent(&agent).await {
                Ok(moved) => demoted += moved,
                Err(fault) => {
                    tracing::warn!(agent = %agent.id, %fault, "a sweep of one agent failed");
                }
            }
        }
        Ok(demoted)
    }

    /// What the next sweep would do to each set, and when each tool leaves if
    /// nothing happens. Changes nothing.
    pub async fn sweep_plan(&self) -> Result<Vec<SweepPlan>, EngineError> {
        let now = self.now();
        let mut plans = Vec::new();
        for agent in self.agents().await? {
            let limits = SetLimits::new(agent.cap, agent.idle_days)?;
            let set: Vec<Member> =
                self.parts.store.set(&agent.id).await?.into_iter().map(member).collect();
            let in_flight = self.in_flight(&agent.id).await?;
            let out = rule::plan(&set, limits, now, in_flight);
            let mut leaving: Vec<Leaving> = set
                .iter()
                .map(|member| {
                    let planned = out.iter().find(|demotion| demotion.tool == member.tool);
                    Leaving {
                        tool: member.tool.clone(),
                        after_ms: match planned.map(|demotion| demotion.cause) {
                            Some(MoveCause::Cap) => now,
                            _ => rule::idle_after(member, limits),
                        },
                        cause: planned.map_or(MoveCause::Idle, |demotion| demotion.cause),
                        now: planned.is_some(),
                    }
                })
                .collect();
            leaving.sort_by(|a, b| (a.after_ms, &a.tool).cmp(&(b.after_ms, &b.tool)));
            plans.push(SweepPlan {
                agent: agent.id,
                agent_name: agent.name,
                size: set.len(),
                cap: agent.cap,
                in_flight,
                leaving,
            });
        }
        Ok(plans)
    }

    /// What became of every tool's runs, of the newest ten thousand, most called first.
    pub async fn statistics(&self) -> Result<Vec<ToolRuns>, EngineError> {
        Ok(self.parts.store.statistics(&self.person).await?)
    }

    async fn sweep_agent(&self, agent: &Agent) -> Result<usize, EngineError> {
        let limits = SetLimits::new(agent.cap, agent.idle_days)?;
        // No run of this node begins between the look and the move.
        let _held_back = self.flights.hold_back().await;
        let set: Vec<Member> =
            self.parts.store.set(&agent.id).await?.into_iter().map(member).collect();
        let now = self.now();
        // Whether a run is in flight only ever keeps a tool in.
        if rule::plan(&set, limits, now, false).is_empty() {
            return Ok(0);
        }
        let in_flight = self.in_flight(&agent.id).await?;
        let out: Vec<(ToolName, MoveCause)> = rule::plan(&set, limits, now, in_flight)
            .into_iter()
            .map(|demotion| (demotion.tool, demotion.cause))
            .collect();
        if out.is_empty() {
            return Ok(0);
        }
        let moved = self.parts.store.demote(&agent.id, &out, now).await?;
        if moved.changed > 0 {
            self.send(Event::list_changed([agent.id.clone()]));
        }
        Ok(moved.changed)
    }

    /// In flight here, or, as far as the store knows, anywhere.
    async fn in_flight(&self, agent: &AgentId) -> Result<bool, StoreFault> {
        Ok(self.flights.has(agent) || self.parts.store.lasting_runs(agent).await? > 0)
    }
}

fn member(row: SetRow) -> Member {
    Member { tool: row.tool, promoted_ms: row.promoted_ms, last_used_ms: row.last_used_ms }
}
