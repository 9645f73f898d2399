//! What the control socket is asked about agents, and the two settings of theirs
//! that are given as words.

use super::Request;
use super::answer::{Answered, Front, value};
use crate::failure::Failure;
use cambium_engine::port::Permission;
use cambium_engine::{InBand, LowLevel, NewAgent};
use serde_json::json;

pub(super) async fn answer(front: &Front, request: Request) -> Answered {
    let engine = &front.engine;
    match request {
        Request::AgentShow { agent } => {
            let agent = engine.agent(&agent).await?;
            let working_set = engine.working_set(&agent.id).await?;
            let history = engine.history(&agent.id).await?;
            let in_band = engine.in_band(&agent.id).await?;
            Ok(json!({
                "agent": agent,
                "inBand": in_band.as_str(),
                "lowLevel": engine.low_level(&agent.id).await?.as_str(),
                "permissions": engine.permissions(&agent.id).await?,
                "workingSet": working_set,
                "history": history,
            }))
        }
        Request::AgentCreate { who, name, cap, idle_days } => {
            let proof = front.proof(who).await?;
            let new = NewAgent { name, cap, idle_days };
            let (agent, token) = engine.create_agent(&proof, new).await?;
            Ok(json!({ "agent": agent, "token": token }))
        }
        Request::AgentRotate { who, agent } => {
            let proof = front.proof(who).await?;
            let agent = engine.agent(&agent).await?;
            let token = engine.rotate_token(&proof, &agent.id).await?;
            Ok(json!({ "agent": agent, "token": token }))
        }
        Request::AgentSet {
            who,
            agent,
            name,
            cap,
            idle_days,
            paused,
            in_band,
            low_level,
            forget_hosts,
        } => {
            let low_level = low_level.as_deref().map(low_level_setting).transpose()?;
            let setting = in_band.as_deref().map(in_band_setting).transpose()?;
            let proof = front.proof(who).await?;
            let agent = engine.agent(&agent).await?;
            if let Some(setting) = setting {
                engine.set_in_band(&proof, &agent.id, setting).await?;
            }
            if let Some(setting) = low_level {
                engine.set_low_level(&proof, &agent.id, setting).await?;
            }
            for host in forget_hosts {
                let host = Permission::ReadPages { host };
                engine.withdraw_permission(&proof, &agent.id, &host).await?;
            }
            value(engine.set_agent(&proof, &agent.id, name, cap, idle_days, paused).await?)
        }
        _ => value(engine.agents().await?),
    }
}

fn low_level_setting(text: &str) -> Result<LowLevel, Failure> {
    LowLevel::parse(text).ok_or_else(|| {
        let known = LowLevel::ALL.map(LowLevel::as_str).join(", ");
        Failure::new(
            "out_of_range",
            format!("--low-level must be one of {known}, not {text}"),
            "none takes write_file out of its list",
        )
    })
}

fn in_band_setting(text: &str) -> Result<InBand, Failure> {
    InBand::parse(text).ok_or_else(|| {
        let known = InBand::ALL.map(InBand::as_str).join(", ");
        Failure::new(
            "out_of_range",
            format!("--in-band must be one of {known}, not {text}"),
            "off lets only the console and the command line decide",
        )
    })
}
