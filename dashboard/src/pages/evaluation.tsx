// Does memory help? Figures of use over time.
import { Effect } from "../evaluation/effect";

export default Effect;
