//! The resources of WASI that are known here. Each instance gets all of them, by
//! the names under which any of them uses any: a name nobody asks for is ignored.

use super::Host;
use super::http::{
    Fields, Future, IncomingBody, IncomingResponse, Options, OutgoingBody, OutgoingRequest,
    Trailers,
};
use super::io::{InputStream, IoError, OutputStream, Pollable};
use wasmtime::component::{LinkerInstance, Resource, ResourceType};
use wasmtime::{Result, StoreContextMut};

/// One that nothing here ever makes.
pub(crate) struct Never;

pub(crate) fn define(instance: &mut LinkerInstance<'_, Host>) -> Result<()> {
    plain::<IoError>(instance, &["error", "io-error"])?;
    plain::<Pollable>(instance, &["pollable"])?;
    plain::<OutputStream>(instance, &["output-stream"])?;
    plain::<Fields>(instance, &["fields", "headers", "trailers"])?;
    plain::<OutgoingRequest>(instance, &["outgoing-request"])?;
    plain::<Options>(instance, &["request-options"])?;
    plain::<IncomingBody>(instance, &["incoming-body"])?;
    plain::<Trailers>(instance, &["future-trailers"])?;
    plain::<Never>(
        instance,
        &["descriptor", "directory-entry-stream", "incoming-request", "outgoing-response"],
    )?;
    plain::<Never>(instance, &["response-outparam", "terminal-input", "terminal-output"])?;
    // What is dropped unread is told to the session.
    dropping(instance, "input-stream", |host, gone: InputStream| host.dropped_input(&gone))?;
    dropping(instance, "outgoing-body", |host, gone: OutgoingBody| host.dropped_body(&gone))?;
    dropping(instance, "future-incoming-response", |host, gone: Future| {
        host.dropped_future(&gone)
    })?;
    dropping(instance, "incoming-response", |host, gone: IncomingResponse| {
        host.dropped_response(&gone)
    })
}

fn plain<T: Send + 'static>(instance: &mut LinkerInstance<'_, Host>, names: &[&str]) -> Result<()> {
    names.iter().try_for_each(|name| dropping(instance, name, |_, _: T| Ok(())))
}

fn dropping<T: Send + 'static>(
    instance: &mut LinkerInstance<'_, Host>,
    name: &str,
    dropped: impl Fn(&mut Host, T) -> Result<()> + Send + Sync + 'static,
) -> Result<()> {
    let kind = ResourceType::host::<T>();
    instance.resource(name, kind, move |mut store: StoreContextMut<'_, Host>, rep| {
        let host = store.data_mut();
        let gone = host.table.delete(Resource::<T>::new_own(rep))?;
        dropped(host, gone)
    })
}
