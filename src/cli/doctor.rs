//! `cambium doctor`: which layers of the sandbox hold on this machine.

use super::print::table;
use super::{Context, Said, visible};
use crate::checker::refused;
use crate::failure::Failure;
use crate::sandboxes::try_components;
use cambium_jail::{JailConfig, LayerReport, doctor};
use serde_json::json;

/// Arguments of `cambium doctor`.
#[derive(clap::Args)]
pub(crate) struct Args {}

impl Args {
    /// Tries each layer in a real jailed process and says which hold.
    pub(crate) async fn run(self, context: &Context) -> Result<Said, Failure> {
        let config = context.config()?;
        let (typescript, components) = (&config.typescript, try_components(&config).await);
        let layers = doctor(JailConfig::default()).await.map_err(|error| refused(&error))?;
        let rows: Vec<_> = layers.iter().map(row).collect();
        let mut text =
            table(&["LAYER", "HOLDS", "WHAT IT DOES, OR WHAT THE KERNEL SAID"], &rows, "");
        text.push_str(match typescript {
            Some(_) => "\ntypes of tools are checked",
            None => "\ntypes of tools are not checked: no `typescript` is configured",
        });
        text.push_str(&match &components {
            Ok(Some(exe)) => format!("\ncomponents run: {}", visible(&exe.display().to_string())),
            Ok(None) => "\ncomponents do not run: there is no `cambium-component` beside this \
                program; docs/components.md says how it is made"
                .to_owned(),
            Err(failure) => format!("\ncomponents do not run: {}", visible(&failure.message)),
        });
        let exe = components.as_ref().ok().cloned().flatten();
        let missing: Vec<&LayerReport> = layers.iter().filter(|layer| !layer.holds).collect();
        let said = Said::new(
            text,
            json!({
                "holds": missing.is_empty(),
                "layers": layers,
                "typescript": typescript,
                "components": exe,
            }),
        );
        let Some(first) = missing.first() else {
            return Ok(match components {
                Ok(_) => said,
                Err(failure) => said.failing(failure),
            });
        };
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
