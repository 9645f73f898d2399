//! `mtls`: the credential is a certificate and its key, used in the handshake.
//! Nothing is put on a request. A connection has its own TLS configuration and
//! its own pools, so two certificates never share a socket.

use super::Unfit;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// A certificate chain, leaf first, and the leaf's key.
pub(crate) struct Identity {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
}

/// Reads a secret: certificates and one key, all in PEM, in any order.
pub(super) fn identity(secret: &[u8]) -> Result<Identity, Unfit> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(secret).collect();
    let chain = chain.map_err(|_| "is not PEM")?;
    if chain.is_empty() {
        return Err("holds no certificate in PEM");
    }
    let key = PrivateKeyDer::from_pem_slice(secret)
        .map_err(|_| "holds no unencrypted private key in PEM")?;
    Ok(Identity { chain, key })
}

/// Whether the key is the certificate's and can be used.
pub(super) fn check_secret(secret: &[u8]) -> Result<(), Unfit> {
    let identity = identity(secret)?;
    crate::upstream::check_identity(identity)
        .map_err(|()| "holds a key that is not the first certificate's, or of a kind not supported")
}
