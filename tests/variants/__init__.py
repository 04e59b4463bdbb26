"""Tests of private variants, on a course of one tiny exercise with a parameter."""
