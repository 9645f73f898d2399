//! The PEM file behind `--ca`, and a first look at what is in it. What counts as an
//! authority is the proxy's to say; here a person only hears at once of the slip
//! that would otherwise show at the first call.

use crate::failure::Failure;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use std::path::Path;

/// The certificate extension that says whether it may sign others, as DER.
const BASIC_CONSTRAINTS: &[u8] = &[0x06, 0x03, 0x55, 0x1d, 0x13];
/// The one that names hosts.
const ALTERNATIVE_NAMES: &[u8] = &[0x06, 0x03, 0x55, 0x1d, 0x11];
/// `TRUE`, as DER.
const TRUE: &[u8] = &[0x01, 0x01, 0xff];

/// Said of a certificate that is most likely the vendor's own.
pub(super) const DOUBTFUL: &str = "the certificate of --ca says CA:TRUE and names a host: if it is the one the vendor itself \
     shows, each call will end in tls_failed; make that one with `openssl req -x509 … -addext \
     basicConstraints=critical,CA:FALSE`";

/// Reads the file.
pub(super) fn pem(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| {
        Failure::new(
            "file_unreadable",
            format!("{} cannot be read: {error}", path.display()),
            "name a PEM file",
        )
    })
}

/// Whether it holds one certificate alone that may sign others and yet names a
/// host, as authorities seldom do. Only good for a warning: nothing is parsed.
pub(super) fn is_doubtful(pem: &str) -> bool {
    let found: Vec<CertificateDer<'_>> =
        CertificateDer::pem_slice_iter(pem.as_bytes()).flatten().collect();
    let [one] = found.as_slice() else { return false };
    after(one, ALTERNATIVE_NAMES).is_some() && after(one, BASIC_CONSTRAINTS).is_some_and(signs)
}

fn after<'a>(der: &'a [u8], extension: &[u8]) -> Option<&'a [u8]> {
    let at = der.windows(extension.len()).position(|bytes| bytes == extension)?;
    der.get(at + extension.len()..)
}

/// Past whether it is critical: an octet string around a sequence that begins
/// with `TRUE`.
fn signs(value: &[u8]) -> bool {
    let value = value.strip_prefix(TRUE).unwrap_or(value);
    matches!(value, [0x04, _, 0x30, _, rest @ ..] if rest.starts_with(TRUE))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};

    #[test]
    fn only_a_certificate_that_signs_and_names_a_host_is_doubted() {
        let key = KeyPair::generate().unwrap();
        let signs = || IsCa::Ca(BasicConstraints::Unconstrained);
        let made = |names: &[&str], is_ca: IsCa| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let mut params = CertificateParams::new(names).unwrap();
            params.is_ca = is_ca;
            params.self_signed(&key).unwrap().pem()
        };
        let slip = made(&["shop.example"], signs());
        assert!(is_doubtful(&slip));
        assert!(!is_doubtful(&made(&[], signs())), "an authority");
        assert!(!is_doubtful(&made(&["shop.example"], IsCa::ExplicitNoCa)));
        assert!(!is_doubtful(&made(&["shop.example"], IsCa::NoCa)));
        assert!(!is_doubtful(&format!("{slip}{slip}")), "a bundle");
        assert!(!is_doubtful("not PEM"));
    }
}
