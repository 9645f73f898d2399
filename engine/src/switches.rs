//! What a person switched on for an agent: that its harness may pass their
//! answer on, and tools that ask every time. Each setting is a signed row; one
//! whose MAC does not hold counts as not set, which is the narrower thing.

use crate::changes::Topic;
use crate::port::SwitchRow;
use crate::{Engine, EngineError, PersonProof, ToolName};
use cambium_proxy::{AgentId, Answer, StoreFault};
use serde::Serialize;

const IN_BAND: &str = "in_band";
const EVERY_TIME: &str = "every_time:";
const ON: &str = "on";
const OFF: &str = "off";

/// Which answers of the person an agent's own harness may pass on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InBand {
    /// None: only the console and the command line decide.
    #[default]
    Off,
    /// *Once*, and only for what deletes nothing.
    Once,
    /// *Once* and *from now on*, and only for what deletes nothing.
    Standing,
    /// *Once* and *from now on*, for what deletes too.
    StandingAndDestructive,
}

impl InBand {
    /// Every setting.
    pub const ALL: [Self; 4] =
        [Self::Off, Self::Once, Self::Standing, Self::StandingAndDestructive];

    /// As it is stored and typed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => OFF,
            Self::Once => "once",
            Self::Standing => "standing",
            Self::StandingAndDestructive => "standing-and-destructive",
        }
    }

    /// Reads what [`Self::as_str`] wrote.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|setting| setting.as_str() == text)
    }

    pub(crate) fn standing(self) -> bool {
        matches!(self, Self::Standing | Self::StandingAndDestructive)
    }
}

impl Engine {
    /// Which answers the agent's harness may pass on.
    pub async fn in_band(&self, agent: &AgentId) -> Result<InBand, EngineError> {
        let value = self.switch(agent, IN_BAND).await?;
        Ok(value.as_deref().and_then(InBand::parse).unwrap_or_default())
    }

    /// Lets an agent's harness pass answers on, or no longer. Takes a fresh
    /// proof: whoever may answer for the person is the person's choice.
    pub async fn set_in_band(
        &self,
        proof: &PersonProof,
        agent: &AgentId,
        setting: InBand,
    ) -> Result<(), EngineError> {
        if !proof.is_fresh() {
            return Err(EngineError::PersonRequired);
        }
        self.set_switch(agent, IN_BAND, setting.as_str()).await
    }

    /// Whether each write of this tool is put to the person by itself.
    pub async fn every_time(&self, agent: &AgentId, tool: &ToolName) -> Result<bool, EngineError> {
        Ok(self.switch(agent, &every_time(tool)).await?.as_deref() == Some(ON))
    }

    /// Puts each write of this tool to the person, or no longer. Switching it on
    /// takes back a standing yes and a *once* that nothing was sent with; switching
    /// it off gives none.
    pub async fn set_every_time(
        &self,
        proof: &PersonProof,
        agent: &AgentId,
        tool: &ToolName,
        on: bool,
    ) -> Result<(), EngineError> {
        self.known(tool).await?;
        self.set_switch(agent, &every_time(tool), if on { ON } else { OFF }).await?;
        let standing = self.parts.store.standing_decision(agent, tool).await?;
        let yes = standing.is_some_and(|row| row.answer == Answer::Standing)
            || self.unused(agent, tool).await?.is_some();
        if on && yes {
            self.withdraw(proof, agent, tool).await?;
        }
        Ok(())
    }

    pub(crate) async fn switch(
        &self,
        agent: &AgentId,
        name: &str,
    ) -> Result<Option<String>, StoreFault> {
        let row = self.parts.store.switch(agent, name).await?;
        Ok(row.filter(|row| self.switch_holds(row)).map(|row| row.value))
    }

    pub(crate) async fn set_switch(
        &self,
        agent: &AgentId,
        name: &str,
        value: &str,
    ) -> Result<(), EngineError> {
        self.agent_by_id(agent).await?;
        let last = self.parts.store.switch(agent, name).await?;
        let mut row = SwitchRow {
            agent: agent.clone(),
            name: name.to_owned(),
            sequence: last.map_or(0, |row| row.sequence) + 1,
            value: value.to_owned(),
            at_ms: self.now(),
            mac: Vec::new(),
        };
        row.mac = self.parts.vault.mac("switch", &refs(&fields(&row))).to_vec();
        self.parts.store.set_switch(&row).await?;
        self.changed(Topic::Lists);
        Ok(())
    }

    fn switch_holds(&self, row: &SwitchRow) -> bool {
        let holds = self.parts.vault.mac_holds("switch", &refs(&fields(row)), &row.mac);
        if !holds {
            tracing::error!(agent = %row.agent, name = row.name, "a switch's MAC does not hold");
        }
        holds
    }
}

fn every_time(tool: &ToolName) -> String {
    format!("{EVERY_TIME}{tool}")
}

fn fields(row: &SwitchRow) -> [Vec<u8>; 5] {
    [
        row.agent.as_str().into(),
        row.name.as_bytes().into(),
        row.sequence.to_be_bytes().into(),
        row.value.as_bytes().into(),
        row.at_ms.to_be_bytes().into(),
    ]
}

fn refs(fields: &[Vec<u8>; 5]) -> Vec<&[u8]> {
    fields.iter().map(Vec::as_slice).collect()
}
