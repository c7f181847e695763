// The neighbourhood as a picture. All of it stands in the tables beside it too.
import cytoscape, { type Core, type ElementDefinition, type StylesheetJson } from "cytoscape";
import { useEffect, useRef } from "preact/hooks";

import { t } from "../text/graph";
import "./graph.css";
import type { Neighbours } from "./shapes";

/** Above so many entities the layout by forces takes too long; rings by distance do not. */
const MOST_BY_FORCES = 120;

export function Drawing(
  { around, centre, choose }: { around: Neighbours; centre: string; choose: (entityId: string) => void },
) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!place.current) return;
    const core = drawn(place.current, around, centre);
    core.on("tap", "node", (event) => choose(event.target.id()));
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const recolour = () => place.current && core.style(styleOf(place.current));
    dark.addEventListener("change", recolour);
    return () => {
      dark.removeEventListener("change", recolour);
      core.destroy();
    };
  }, [around, centre]);
  const figures = { entities: around.entities.length, relations: around.relations.length };
  return (
    <>
      {/* Cytoscape adds a <style> unless an element has this id; the policy of the page forbids that. */}
      <div id="__________cytoscape_stylesheet" hidden />
      <div class="graph-drawing" role="img" aria-label={t("picture", figures)} ref={place} />
    </>
  );
}

function drawn(container: HTMLElement, around: Neighbours, centre: string): Core {
  const byForces = around.entities.length <= MOST_BY_FORCES;
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  return cytoscape({
    container,
    elements: elementsOf(around, centre),
    style: styleOf(container),
    layout: byForces
      ? { name: "cose", animate: false, randomize: true, padding: 24, nodeDimensionsIncludeLabels: true }
      : { name: "concentric", animate: false, padding: 24, minNodeSpacing: 12, concentric: (node: { data: (name: string) => number }) => -node.data("hops"), levelWidth: () => 1 },
    maxZoom: 1.5,
    boxSelectionEnabled: false,
    ...(still ? { motionBlur: false } : {}),
  });
}

function elementsOf(around: Neighbours, centre: string): ElementDefinition[] {
  const known = new Set(around.entities.map((entity) => entity.entity_id));
  const nodes = around.entities.map((entity) => ({
    data: { id: entity.entity_id, label: entity.name, hops: entity.hops },
    classes: entity.entity_id === centre ? "centre" : "",
  }));
  const edges = around.relations
    .filter((relation) => known.has(relation.source.entity_id) && known.has(relation.destination.entity_id))
    .map((relation) => ({
      data: {
        id: relation.relation_id,
        source: relation.source.entity_id,
        target: relation.destination.entity_id,
        label: relation.relation,
      },
    }));
  return [...nodes, ...edges];
}

function styleOf(element: HTMLElement): StylesheetJson {
  const style = getComputedStyle(element);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  const text = { "font-family": "system-ui, sans-serif", color: colour("--text"), label: "data(label)" };
  return [
    {
      selector: "node",
      style: {
        ...text, "font-size": 12, "text-wrap": "ellipsis", "text-max-width": "120px", "text-valign": "bottom",
        "text-margin-y": 4, width: 22, height: 22, "background-color": colour("--tone-1"),
      },
    },
    { selector: "node.centre", style: { width: 34, height: 34, "background-color": colour("--tone-3"), "font-weight": "bold" } },
    {
      selector: "edge",
      style: {
        ...text, "font-size": 10, color: colour("--muted"), "text-rotation": "autorotate", "text-background-opacity": 1,
        "text-background-color": colour("--panel"), width: 1.5, "line-color": colour("--line"),
        "curve-style": "bezier", "target-arrow-shape": "triangle", "target-arrow-color": colour("--muted"),
      },
    },
  ];
}
