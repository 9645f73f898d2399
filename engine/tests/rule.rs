//! The rule as a table, one test for each behaviour 69 to 77. What needs a
//! store or a ticker (overlap, several nodes, a re-promoted tool's approval) is
//! tested where those are.
#![allow(clippy::unwrap_used)]

use cambium_engine::{
    Demotion, EngineError, Member, MoveCause, SWEEP_EVERY, SetLimits, ToolName, plan,
};

const DAY: i64 = 24 * 60 * 60 * 1000;
const NOW: i64 = 1_000 * DAY;

/// `(name, promoted, last used)`, both as milliseconds before [`NOW`].
fn set(rows: &[(&str, i64, Option<i64>)]) -> Vec<Member> {
    rows.iter()
        .map(|(name, promoted, used)| Member {
            tool: ToolName::new("shop", name).unwrap(),
            promoted_ms: NOW - promoted,
            last_used_ms: used.map(|used| NOW - used),
        })
        .collect()
}

fn limits(cap: u32, days: u32) -> SetLimits {
    SetLimits::new(cap, days).unwrap()
}

fn said(demotions: &[Demotion]) -> Vec<(String, MoveCause)> {
    demotions.iter().map(|d| (d.tool.name().to_owned(), d.cause)).collect()
}

fn at_now(rows: &[(&str, i64, Option<i64>)], limits: SetLimits) -> Vec<(String, MoveCause)> {
    said(&plan(&set(rows), limits, NOW, false))
}

fn idle(name: &str) -> (String, MoveCause) {
    (name.into(), MoveCause::Idle)
}

fn cap(name: &str) -> (String, MoveCause) {
    (name.into(), MoveCause::Cap)
}

#[test]
fn b069_limits_have_defaults_and_bounds() {
    assert_eq!((SetLimits::default().cap(), SetLimits::default().idle_days()), (20, 21));
    for (cap, days) in [(1, 1), (500, 3650), (20, 21)] {
        assert!(SetLimits::new(cap, days).is_ok(), "{cap} {days}");
        assert!(SetLimits::parse(&cap.to_string(), &days.to_string()).is_ok());
    }
    for (cap, days, fault) in [
        ("0", "21", "0"),
        ("501", "21", "501"),
        ("20", "0", "0"),
        ("20", "3651", "3651"),
        ("1.5", "21", "1.5"),
        ("", "21", ""),
        (" ", "21", " "),
        ("20", "", ""),
        ("20", "2.0", "2.0"),
        ("-1", "21", "-1"),
        ("+20", "21", "+20"),
        (" 20", "21", " 20"),
        ("99999999999", "21", "99999999999"),
        ("２０", "21", "２０"),
    ] {
        let error = SetLimits::parse(cap, days).unwrap_err();
        assert_eq!(error.code(), "out_of_range", "{cap:?} {days:?}");
        let EngineError::OutOfRange { value, rule, .. } = error else { unreachable!() };
        assert_eq!(value, fault);
        assert!(rule.starts_with("a whole number"));
    }
}

#[test]
fn b070_sweeps_every_five_minutes_idle_before_cap() {
    assert_eq!(SWEEP_EVERY.as_secs(), 300);
    // Two over a cap of one: the idle one leaves first and the cap is kept.
    let rows = [("old", 30 * DAY, None), ("new", DAY, None)];
    assert_eq!(at_now(&rows, limits(1, 21)), [idle("old")]);
}

#[test]
fn b071_idle_counts_from_the_last_use_else_the_promotion() {
    let w = 21 * DAY;
    let rows = [
        ("used-long-ago", 60 * DAY, Some(w + 1)),
        ("forgotten", w + 1, None),
        ("used", 60 * DAY, Some(DAY)),
        ("fresh", DAY, None),
        ("at-the-window", 60 * DAY, Some(w)),
        ("promoted-at-the-window", w, None),
        // A use before the promotion is not one since it.
        ("back-again", DAY, Some(60 * DAY)),
    ];
    assert_eq!(at_now(&rows, limits(20, 21)), [idle("forgotten"), idle("used-long-ago")]);
}

#[test]
fn b072_cap_takes_the_oldest_promotion_not_yet_called() {
    let rows = [
        ("used", 20 * DAY, Some(20 * DAY)),
        ("third", DAY, None),
        ("first", 3 * DAY, None),
        ("second", 2 * DAY, None),
    ];
    assert_eq!(at_now(&rows, limits(4, 21)), []);
    assert_eq!(at_now(&rows, limits(3, 21)), [cap("first")]);
    assert_eq!(at_now(&rows, limits(2, 21)), [cap("first"), cap("second")]);
    assert_eq!(at_now(&rows, limits(1, 21)), [cap("first"), cap("second"), cap("third")]);
}

#[test]
fn b072_ties_go_by_wire_name() {
    let rows = [("b", DAY, None), ("c", DAY, None), ("a", DAY, None)];
    assert_eq!(at_now(&rows, limits(1, 21)), [cap("a"), cap("b")]);
}

#[test]
fn b072_a_use_before_the_latest_promotion_protects() {
    let rows = [("used-then-back", 2 * DAY, Some(5 * DAY)), ("never", DAY, None)];
    assert_eq!(at_now(&rows, limits(1, 21)), [cap("never")]);
    // Outside the window it does not; a use exactly at it does.
    let rows = [("back", 2 * DAY, Some(21 * DAY + 1)), ("never", DAY, None)];
    assert_eq!(at_now(&rows, limits(1, 21)), [cap("back")]);
    let rows = [("back", 2 * DAY, Some(21 * DAY)), ("never", DAY, None)];
    assert_eq!(at_now(&rows, limits(1, 21)), [cap("never")]);
}

#[test]
fn b073_a_set_all_used_stays_above_the_cap() {
    let rows =
        [("a", 9 * DAY, Some(DAY)), ("b", 9 * DAY, Some(2 * DAY)), ("c", 9 * DAY, Some(21 * DAY))];
    assert_eq!(at_now(&rows, limits(1, 21)), []);
}

#[test]
fn b074_a_run_in_flight_keeps_the_whole_set() {
    let members = set(&[("idle", 99 * DAY, None), ("over", DAY, None), ("over-too", DAY, None)]);
    assert_eq!(plan(&members, limits(1, 21), NOW, true), []);
    let later = plan(&members, limits(1, 21), NOW, false);
    assert_eq!(said(&later), [idle("idle"), cap("over")]);
}

#[test]
fn b075_raising_a_limit_only_ever_keeps_more() {
    let rows = [("a", 9 * DAY, None), ("b", 30 * DAY, None), ("c", DAY, None)];
    assert_eq!(at_now(&rows, limits(1, 21)), [idle("b"), cap("a")]);
    assert_eq!(at_now(&rows, limits(1, 31)), [cap("b"), cap("a")]);
    assert_eq!(at_now(&rows, limits(3, 31)), []);
}

#[test]
fn b075_a_clock_that_jumps_is_no_panic_and_one_catch_up() {
    let members = set(&[("a", DAY, None), ("ahead", -400 * DAY, Some(-500 * DAY))]);
    for now in [i64::MIN, 0, NOW, i64::MAX] {
        let first = plan(&members, limits(1, 1), now, false);
        let rest: Vec<Member> =
            members.iter().filter(|m| first.iter().all(|d| d.tool != m.tool)).cloned().collect();
        assert_eq!(plan(&rest, limits(1, 1), now, false), [], "at {now}");
    }
    // Set back: what lies ahead counts as just now.
    assert_eq!(plan(&members, limits(2, 1), NOW - 9 * DAY, false), []);
}

#[test]
fn b076_the_order_of_the_rows_does_not_matter() {
    let mut members = set(&[
        ("a", DAY, None),
        ("b", 50 * DAY, None),
        ("c", 2 * DAY, None),
        ("d", 40 * DAY, None),
    ]);
    let first = plan(&members, limits(1, 21), NOW, false);
    members.reverse();
    assert_eq!(plan(&members, limits(1, 21), NOW, false), first);
    assert_eq!(said(&first), [idle("b"), idle("d"), cap("c")]);
}

#[test]
fn b077_an_aged_out_tool_comes_back_with_a_fresh_clock() {
    assert_eq!(at_now(&[("monthly", 40 * DAY, Some(30 * DAY))], limits(20, 21)), [idle("monthly")]);
    // Promoted again just now, its old use unchanged: it stays.
    assert_eq!(at_now(&[("monthly", 0, Some(30 * DAY))], limits(20, 21)), []);
}
