"""Shared by algorithms and engines: facts, compiled rules, the operator Π[Ip, In : Δp, Δn]."""
