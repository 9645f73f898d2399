//! `cambium doctor`: which layers of the sandbox hold on this machine.

use super::print::table;
use super::{Context, Said, visible};
use crate::checker::refused;
use crate::failure::Failure;
use cambium_jail::{JailConfig, LayerReport, doctor};
use serde_json::json;

/// Arguments of `cambium doctor`.
#[derive(clap::Args)]
pub(crate) struct Args {}

impl Args {
    /// Tries each layer in a real jailed process and says which hold.
    pub(crate) async fn run(self, context: &Context) -> Result<Said, Failure> {
        let typescript = context.config()?.typescript;
        let layers = doctor(JailConfig::default()).await.map_err(|error| refused(&error))?;
        let rows: Vec<_> = layers.iter().map(row).collect();
        let mut text =
            table(&["LAYER", "HOLDS", "WHAT IT DOES, OR WHAT THE KERNEL SAID"], &rows, "");
        text.push_str(match &typescript {
            Some(_) => "\ntypes of tools are checked",
            None => "\ntypes of tools are not checked: no `typescript` is configured",
        });
        let missing: Vec<&LayerReport> = layers.iter().filter(|layer| !layer.holds).collect();
        let said = Said::new(
            text,
            json!({ "holds": missing.is_empty(), "layers": layers, "typescript": typescript }),
        );
        let Some(first) = missing.first() else { return Ok(said) };
        let names: Vec<&str> = missing.iter().map(|layer| layer.layer.as_str()).collect();
        Ok(said.failing(Failure::new(
            "layer_missing",
            format!("not every layer holds here: {}", names.join(", ")),
            first.next.clone(),
        )))
    }
}

fn row(layer: &LayerReport) -> Vec<String> {
    let holds = if layer.holds { "yes" } else { "NO" };
    vec![visible(&layer.layer), holds.to_owned(), visible(&layer.detail)]
}
