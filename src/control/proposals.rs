//! What agents proposed, over the control socket: listed, accepted, refused.

use super::Request;
use super::answer::{Answered, Front, done, value};
use cambium_engine::{Acceptance, Wants};
use cambium_proxy::Secret;

/// Carries one of the three out.
pub(super) async fn answer(front: &Front, request: Request) -> Answered {
    let engine = &front.engine;
    match request {
        Request::ProposalAccept { who, id, accept, secret } => {
            let proof = front.proof(who).await?;
            let proposal = engine.proposal(&id).await?;
            let secret = secret.map(|text| Secret::new(text.into_bytes()));
            let (vendor_name, free) = match proposal.wants {
                Wants::Permission { .. } => {
                    engine.accept_permission(&proof, &id).await?;
                    return done();
                }
                Wants::Credential { connection, .. } => {
                    let Some(secret) = secret else { return front.with_link(*connection) };
                    let same = accept.same_account;
                    let entered = engine.accept_credential(&proof, &id, secret, same).await?;
                    return front.with_link(entered);
                }
                Wants::Connection { display_name, slug, .. } => (display_name, slug),
            };
            let mut agents = Vec::new();
            for agent in &accept.agents {
                agents.push(engine.agent(agent).await?.id);
            }
            if agents.is_empty() && !accept.all_agents {
                agents.push(proposal.agent);
            }
            let acceptance = Acceptance {
                slug: accept.slug.unwrap_or(free),
                display_name: accept.display_name.unwrap_or(vendor_name),
                agents,
                confirmed: Vec::new(),
                // Whoever writes a name on the command line has typed it.
                typed: accept.hosts,
            };
            let made = engine.accept_connection(&proof, &id, acceptance, secret).await?;
            front.with_link(made)
        }
        Request::ProposalRefuse { who, id } => {
            let proof = front.proof(who).await?;
            engine.refuse_proposal(&proof, &id).await?;
            done()
        }
        _ => value(engine.proposals().await?),
    }
}
