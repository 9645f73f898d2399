//! TLS as every vendor gets it: rustls with ring, TLS 1.2 and 1.3, the public
//! roots or, instead of them, the connection's own authority. There is no
//! switch that turns verification off.

use crate::Refusal;
use crate::credential::Identity;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use std::sync::Arc;

/// The configuration of one connection, with its own certificate if it has one.
pub(super) fn config(
    ca_pem: Option<&str>,
    identity: Option<Identity>,
) -> Result<Arc<ClientConfig>, Refusal> {
    let wrong = |why: &str| Refusal::TlsFailed(format!("the connection's authority {why}"));
    let mut roots = RootCertStore::empty();
    match ca_pem {
        None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        Some(pem) => {
            for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
                let certificate = certificate.map_err(|_| wrong("is not PEM"))?;
                roots.add(certificate).map_err(|_| wrong("is not a certificate we can use"))?;
            }
            if roots.is_empty() {
                return Err(wrong("holds no certificate"));
            }
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|_| wrong("cannot be used with this TLS library"))?
        .with_root_certificates(roots);
    let mut config = match identity {
        None => config.with_no_client_auth(),
        Some(Identity { chain, key }) => {
            config.with_client_auth_cert(chain, key).map_err(|error| {
                tracing::debug!(%error, "a client certificate cannot be used");
                Refusal::CredentialUnavailable("the certificate or its key cannot be used".into())
            })?
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
