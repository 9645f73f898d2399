//! The whole table: every grant, hint, effect, site and way in, against what
//! must hold for all of them; then each row by name.
#![allow(clippy::unwrap_used)]

use super::*;

const GRANTS: [GrantKind; 5] =
    [GrantKind::ReadOnly, GrantKind::Preview, GrantKind::Ask, GrantKind::AskEach, GrantKind::Write];
const EFFECTS: [Effect; 3] = [Effect::Read, Effect::Write, Effect::Destroy];
const SITES: [SiteMatch; 4] =
    [SiteMatch::Recorded, SiteMatch::Open, SiteMatch::Opened, SiteMatch::Outside];

fn all() -> Vec<Facts> {
    let mut all = Vec::new();
    for grant in GRANTS {
        for (method, effect) in EFFECTS.iter().flat_map(|m| EFFECTS.map(|e| (*m, e))) {
            for site in SITES {
                for bits in 0..16 {
                    let bit = |n: u8| bits & (1 << n) != 0;
                    let hints = Hints { read_only: bit(0), destructive: bit(1) };
                    let (body, sdk) = (bit(2), bit(3));
                    all.push(Facts { grant, hints, method, effect, site, body, sdk });
                }
            }
        }
    }
    all
}

#[test]
fn what_holds_for_every_request() {
    for facts in all() {
        let (decision, rule) = decide(&facts);
        let refused = matches!(decision, Decision::Refuse(_));
        let read = facts.effect == Effect::Read;
        if decision == Decision::Forward {
            assert!(read, "{facts:?} went by itself ({rule})");
        }
        if facts.grant == GrantKind::Preview && !read {
            assert!(refused || decision == Decision::Preview, "{facts:?} {rule}");
        }
        if facts.grant == GrantKind::ReadOnly {
            assert!(refused || read, "{facts:?} {rule}");
        }
        if facts.hints.read_only {
            assert!(refused || facts.method == Effect::Read, "{facts:?} {rule}");
        }
        if facts.method == Effect::Destroy && (!facts.hints.destructive || facts.sdk) {
            assert!(refused, "{facts:?} {rule}");
        }
        if facts.site == SiteMatch::Outside || (facts.method == Effect::Read && facts.body) {
            assert!(refused, "{facts:?} {rule}");
        }
        if decision == (Decision::NeedsPermit { standing_counts: true }) {
            let standing = matches!(facts.grant, GrantKind::Ask | GrantKind::Write);
            let told = matches!(facts.site, SiteMatch::Recorded | SiteMatch::Opened);
            assert!(standing && told, "{facts:?} {rule}");
            let unseen = facts.effect == Effect::Destroy && facts.method != Effect::Destroy;
            assert!(!unseen, "{facts:?} {rule}");
        }
    }
}

#[test]
fn each_row_has_a_request_that_meets_it() {
    let usual = Facts {
        grant: GrantKind::Ask,
        hints: Hints { read_only: false, destructive: true },
        method: Effect::Write,
        effect: Effect::Write,
        site: SiteMatch::Recorded,
        body: false,
        sdk: false,
    };
    let reading = Facts { method: Effect::Read, effect: Effect::Read, ..usual };
    let deleting = Facts { method: Effect::Destroy, effect: Effect::Destroy, ..usual };
    let reads = Hints { read_only: true, destructive: false };
    let writes = Hints { read_only: false, destructive: false };
    for (facts, expected) in [
        (Facts { hints: reads, ..usual }, "read_only_hint"),
        (Facts { hints: reads, sdk: true, ..reading }, "sdk_is_a_write"),
        (Facts { sdk: true, ..deleting }, "sdk_never_destroys"),
        (Facts { hints: writes, ..deleting }, "destructive_hint"),
        (Facts { body: true, ..reading }, "read_without_body"),
        (Facts { site: SiteMatch::Outside, ..usual }, "recorded_sites"),
        (reading, "reads_go"),
        (Facts { effect: Effect::Read, ..usual }, "queries_go"),
        (Facts { grant: GrantKind::ReadOnly, ..usual }, "read_only_grant"),
        (Facts { grant: GrantKind::Preview, ..usual }, "dry_run_shows"),
        (Facts { grant: GrantKind::AskEach, ..usual }, "each_asks"),
        (Facts { hints: reads, method: Effect::Read, ..usual }, "recorded_site_needs_permit"),
        (Facts { hints: writes, effect: Effect::Destroy, ..usual }, "raised_to_destroy_asks"),
        (usual, "recorded_site_needs_permit"),
        (deleting, "recorded_site_needs_permit"),
        (Facts { site: SiteMatch::Open, ..usual }, "open_site_needs_permit"),
        (Facts { site: SiteMatch::Opened, ..usual }, "opened_site_needs_permit"),
    ] {
        assert_eq!(decide(&facts).1, expected, "{facts:?}");
    }
}
